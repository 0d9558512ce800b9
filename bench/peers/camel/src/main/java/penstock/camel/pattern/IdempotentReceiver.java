package penstock.camel.pattern;

import java.util.HashMap;
import org.apache.camel.spi.IdempotentRepository;
import org.apache.camel.support.processor.idempotent.MemoryIdempotentRepository;
import penstock.camel.json.Decode;
import penstock.camel.message.Identified;

final class IdempotentReceiver {

    private IdempotentReceiver() {
    }

    static void draw(Routes routes) {
        // The repository has a lock of its own, and no limit, for nothing may be forgotten within an iteration.
        IdempotentRepository seen = MemoryIdempotentRepository.memoryIdempotentRepository(new HashMap<>());
        routes.filtering();
        routes.beforeIteration(seen::clear);
        routes.source()
                .process(new Decode(Identified.class))
                .idempotentConsumer(Body.expression(Identified.class, message -> message.identifier), seen)
                .completionEager(true)
                .to("channel:out");
    }
}
