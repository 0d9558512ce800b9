package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonIncludeProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.annotation.JsonSerialize;

/** An order and its customer side by side. */
public record OrderAndCustomer(
        @JsonProperty("msgId") long identifier,
        @JsonProperty("type") String type,
        @JsonProperty("order") @JsonSerialize(as = OrderFields.class) OrderFields order,
        @JsonProperty("customer") @JsonIncludeProperties({"CNAME", "CMKTSEGMENT", "CNATIONKEY"}) Customer customer) {
}
