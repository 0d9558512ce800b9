package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** The fields of an order that the routers ask for. */
public final class Terms extends Decoded {

    private static final double CHEAP = 100_000;

    @JsonProperty("OTOTALPRICE")
    public double totalPrice;
    @JsonProperty("OORDERPRIORITY")
    public String priority;
    @JsonProperty("OORDERDATE")
    public String date;
    @JsonProperty("OORDERSTATUS")
    public String status;

    public boolean isCheap() {
        return totalPrice < CHEAP;
    }

    public boolean isMedium() {
        return priority.equals("3-MEDIUM");
    }

    public boolean isOld() {
        return date.compareTo("1995-01-01") < 0;
    }

    public boolean isPending() {
        return status.equals("P");
    }
}
