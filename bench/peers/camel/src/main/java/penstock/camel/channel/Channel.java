package penstock.camel.channel;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.LongAdder;

/** The end of a route: counts what arrives and, if there is a file, writes it there. */
final class Channel implements AutoCloseable {

    private final LongAdder count = new LongAdder();
    private final OutputStream file;

    private Channel(OutputStream file) {
        this.file = file;
    }

    static Channel counting() {
        return new Channel(null);
    }

    static Channel writing(Path path) throws IOException {
        return new Channel(new BufferedOutputStream(Files.newOutputStream(path)));
    }

    void accept(byte[] message) throws IOException {
        count.increment();
        if (file != null) {
            synchronized (file) {
                file.write(message);
                file.write('\n');
            }
        }
    }

    long takeCount() {
        return count.sumThenReset();
    }

    @Override
    public void close() throws IOException {
        if (file != null) {
            file.close();
        }
    }
}
