package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** What the content filter keeps of an order. */
public final class Content extends Decoded {

    @JsonProperty("OORDERKEY")
    public long orderKey;
    @JsonProperty("OCUSTKEY")
    public long customerKey;
    @JsonProperty("OTOTALPRICE")
    public double totalPrice;
}
