package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** An order of which only the price is needed. */
public final class Price extends Decoded {

    private static final double CHEAP = 100_000;

    @JsonProperty("OTOTALPRICE")
    public double totalPrice;

    public boolean isCheap() {
        return totalPrice < CHEAP;
    }
}
