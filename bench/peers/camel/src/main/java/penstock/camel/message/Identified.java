package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;
import penstock.camel.json.Decoded;

/** A message of which only the identifier is needed. It is text because keys are text in Camel. */
public final class Identified extends Decoded {

    @JsonProperty("msgId")
    public String identifier;
}
