package penstock.camel.message;

import com.fasterxml.jackson.annotation.JsonProperty;

/** A row of the customer table. */
public final class Customer {

    @JsonProperty("msgId")
    public long identifier;
    @JsonProperty("type")
    public String type;
    @JsonProperty("CCUSTKEY")
    public long key;
    @JsonProperty("CNAME")
    public String name;
    @JsonProperty("CADDRESS")
    public String address;
    @JsonProperty("CNATIONKEY")
    public long nationKey;
    @JsonProperty("CPHONE")
    public String phone;
    @JsonProperty("CACCTBAL")
    public double balance;
    @JsonProperty("CMKTSEGMENT")
    public String marketSegment;
    @JsonProperty("CCOMMENT")
    public String comment;
}
