package penstock.camel;

import org.apache.camel.CamelContext;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.camel.support.SimpleUuidGenerator;

/** A Camel context with everything off that costs time for each message and that nobody looks at here. */
final class LeanContext {

    private LeanContext() {
    }

    static CamelContext create() {
        DefaultCamelContext context = new DefaultCamelContext();
        context.disableJMX();
        context.setTracing(false);
        context.setMessageHistory(false);
        context.setStreamCaching(false);
        context.setAllowUseOriginalMessage(false);
        context.setLoadTypeConverters(false);
        context.setUuidGenerator(new SimpleUuidGenerator());
        context.getInflightRepository().setInflightBrowseEnabled(false);
        context.getShutdownStrategy().setTimeout(1);
        return context;
    }
}
