package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** A message that has a place in a sequence. */
public final class Positioned extends Decoded {

    @JsonProperty("group")
    public String group;
    @JsonProperty("position")
    public int position;
}
