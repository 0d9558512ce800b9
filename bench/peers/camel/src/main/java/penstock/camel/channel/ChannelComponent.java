package penstock.camel.channel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.camel.Endpoint;
import org.apache.camel.support.DefaultComponent;

/** `channel:cheap` is the void receiver of that name. */
public final class ChannelComponent extends DefaultComponent {

    private final Map<String, Channel> channels = new TreeMap<>();
    private final Path directory;

    /** Without a directory the channels only count. */
    public ChannelComponent(Path directory) throws IOException {
        this.directory = directory;
        if (directory != null) {
            Files.createDirectories(directory);
        }
    }

    @Override
    protected Endpoint createEndpoint(String uri, String name, Map<String, Object> parameters) throws IOException {
        Channel channel = directory == null
                ? Channel.counting()
                : Channel.writing(directory.resolve(name + ".jsonl"));
        channels.put(name, channel);
        return new ChannelEndpoint(uri, this, channel);
    }

    /** What has arrived since the last time that this was asked. */
    public Map<String, Long> takeCounts() {
        Map<String, Long> counts = new TreeMap<>();
        channels.forEach((name, channel) -> counts.put(name, channel.takeCount()));
        return counts;
    }

    public void closeChannels() throws IOException {
        for (Channel channel : channels.values()) {
            channel.close();
        }
    }
}
