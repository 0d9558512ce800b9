package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import penstock.camel.json.Decoded;

/** A customer with all nations, of which those fields are needed that join them. */
public final class Resident extends Decoded {

    private static final int EUROPE = 3;

    @JsonProperty("customer")
    public Customer customer;
    @JsonProperty("nations")
    public List<Nation> nations;

    public static final class Customer {
        @JsonProperty("CNATIONKEY")
        public int nation;
        @JsonProperty("CACCTBAL")
        public double balance;
    }

    public static final class Nation {
        @JsonProperty("NNATIONKEY")
        public int key;
        @JsonProperty("NREGIONKEY")
        public int region;
    }

    public boolean isSolventEuropean() {
        return customer.balance > 0 && region() == EUROPE;
    }

    private int region() {
        for (Nation nation : nations) {
            if (nation.key == customer.nation) {
                return nation.region;
            }
        }
        return -1;
    }
}
