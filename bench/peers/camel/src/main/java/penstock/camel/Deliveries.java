package penstock.camel;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import penstock.camel.json.Json;

/** What is sent in an iteration, in order: bodies, and by which entrance each of them comes in. */
record Deliveries(List<Object> bodies, List<Entrance> entrances) {

    int size() {
        return bodies.size();
    }

    void send(int index) throws Exception {
        entrances.get(index).send(bodies.get(index));
    }

    /** A batch is a list of messages that come in together, by one entrance. */
    static Deliveries of(List<byte[]> messages, List<Entrance> entrances, Integer batch) throws IOException {
        Deliveries deliveries = new Deliveries(new ArrayList<>(), new ArrayList<>());
        if (batch == null) {
            for (byte[] message : messages) {
                deliveries.add(message, entrances.get(route(message, entrances.size())));
            }
            return deliveries;
        }
        List<List<byte[]>> perEntrance = entrances.stream().<List<byte[]>>map(entrance -> new ArrayList<>()).toList();
        for (byte[] message : messages) {
            perEntrance.get(route(message, entrances.size())).add(message);
        }
        for (int route = 0; route < entrances.size(); route++) {
            List<byte[]> arriving = perEntrance.get(route);
            for (int start = 0; start < arriving.size(); start += batch) {
                List<byte[]> together = arriving.subList(start, Math.min(start + batch, arriving.size()));
                deliveries.add(List.copyOf(together), entrances.get(route));
            }
        }
        return deliveries;
    }

    private static int route(byte[] message, int routes) throws IOException {
        return routes == 1 ? 0 : (int) (Json.MAPPER.readTree(message).get("msgId").asLong() % routes);
    }

    private void add(Object body, Entrance entrance) {
        bodies.add(body);
        entrances.add(entrance);
    }
}
