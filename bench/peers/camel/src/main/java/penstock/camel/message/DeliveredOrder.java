package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;

/** An order that says whether it has arrived. */
public final class DeliveredOrder extends Order {

    @JsonProperty("delivered")
    public boolean delivered;
}
