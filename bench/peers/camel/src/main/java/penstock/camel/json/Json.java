package penstock.camel.json;

import com.fasterxml.jackson.core.*;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;

public final class Json {

    public static final ObjectMapper MAPPER = make();
    static ObjectMapper make() {
        JsonFactoryBuilder fb = new JsonFactoryBuilder();
        if (Boolean.getBoolean("fast")) fb.enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER).enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER);
        JsonMapper.Builder b = JsonMapper.builder(fb.build()).disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        if (Boolean.getBoolean("blackbird")) b.addModule(new com.fasterxml.jackson.module.blackbird.BlackbirdModule());
        return b.build();
    }

    private Json() {
    }
}
