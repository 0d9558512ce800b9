package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonIncludeProperties;
import com.fasterxml.jackson.annotation.JsonProperty;

/** An order with its customer inside. */
public final class NestedOrder extends Order {

    @JsonProperty("customer")
    @JsonIncludeProperties({"CNAME", "CMKTSEGMENT", "CNATIONKEY"})
    public Customer customer;
}
