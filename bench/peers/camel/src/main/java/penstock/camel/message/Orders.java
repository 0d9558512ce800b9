package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import penstock.camel.json.Decoded;

/** Several orders in one message. */
public final class Orders extends Decoded {

    @JsonProperty("orders")
    public List<Order> orders;
}
