package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** The fields of an order that another application wants. */
public final class OrderSummary extends Decoded {

    @JsonProperty("OORDERKEY")
    public long orderKey;
    @JsonProperty("OCUSTKEY")
    public long customerKey;
    @JsonProperty("OTOTALPRICE")
    public double totalPrice;
    @JsonProperty("OORDERPRIORITY")
    public String priority;
    @JsonProperty("OORDERDATE")
    public String date;
    @JsonProperty("OORDERSTATUS")
    public String status;
}
