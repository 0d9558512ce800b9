package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;

/** An order as a message, with all its fields. */
public class Order extends OrderFields {

    @JsonProperty("msgId")
    public long identifier;
    @JsonProperty("type")
    public String type;
}
