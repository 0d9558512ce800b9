package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** The fields of an order by which its recipients are found. */
public final class Addressed extends Decoded {

    @JsonProperty("OORDERPRIORITY")
    public String priority;
    @JsonProperty("OORDERSTATUS")
    public String status;
}
