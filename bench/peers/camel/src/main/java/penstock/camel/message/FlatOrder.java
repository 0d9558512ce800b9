package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;

/** An order with fields of its customer among its own. */
public final class FlatOrder extends Order {

    @JsonProperty("CNAME")
    public String customerName;
    @JsonProperty("CMKTSEGMENT")
    public String marketSegment;
}
