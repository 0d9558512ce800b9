package penstock.camel.json;

import com.fasterxml.jackson.annotation.JsonIgnore;

/** Those fields of a message that a route looks at, together with the text that goes on unchanged. */
public abstract class Decoded {

    @JsonIgnore
    public byte[] text;
}
