package penstock.camel;

import java.util.List;
import java.util.Map;
import org.apache.camel.CamelContext;
import penstock.camel.channel.ChannelComponent;
import penstock.camel.pattern.Patterns;
import penstock.camel.pattern.Routes;

/** One workload with its routes, started, and its messages in memory. */
final class Peer implements AutoCloseable {

    private final CamelContext context;
    private final ChannelComponent channels;
    private final Routes routes;
    private final Producers producers;
    private final int messages;

    Peer(Arguments arguments) throws Exception {
        List<byte[]> input = Input.read(arguments.inputs());
        messages = input.size();
        channels = new ChannelComponent(arguments.checkOut());
        routes = new Routes(Patterns.named(arguments.workload()), arguments::table, arguments.batch() != null);
        context = LeanContext.create();
        context.addComponent("channel", channels);
        context.addRoutes(routes);
        context.start();
        List<Entrance> entrances = routes.entrances().stream().map(name -> new Entrance(context, name)).toList();
        producers = new Producers(Deliveries.of(input, entrances, arguments.batch()), arguments.producers());
    }

    String version() {
        return context.getVersion();
    }

    Iteration iterate() throws Exception {
        routes.forget();
        long start = System.nanoTime();
        producers.send();
        routes.flush();
        double seconds = (System.nanoTime() - start) / 1e9;
        Map<String, Long> delivered = channels.takeCounts();
        long arrived = delivered.values().stream().mapToLong(Long::longValue).sum();
        return new Iteration(messages, seconds, delivered, routes.isFiltering() ? messages - arrived : 0);
    }

    /** One iteration, of which all outputs are in their files when this comes back. */
    Map<String, Long> check() throws Exception {
        Map<String, Long> delivered = iterate().delivered();
        channels.closeChannels();
        return delivered;
    }

    @Override
    public void close() {
        producers.close();
        context.stop();
    }
}
