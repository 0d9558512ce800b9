package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** An order as the table has it. */
public class OrderFields extends Decoded {

    @JsonProperty("OORDERKEY")
    public long orderKey;
    @JsonProperty("OCUSTKEY")
    public long customerKey;
    @JsonProperty("OORDERSTATUS")
    public String status;
    @JsonProperty("OTOTALPRICE")
    public double totalPrice;
    @JsonProperty("OORDERDATE")
    public String date;
    @JsonProperty("OORDERPRIORITY")
    public String priority;
    @JsonProperty("OCLERK")
    public String clerk;
    @JsonProperty("OSHIPPRIORITY")
    public long shipPriority;
    @JsonProperty("OCOMMENT")
    public String comment;
}
