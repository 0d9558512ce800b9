package penstock.camel;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Lines of JSON in memory, one byte array for each message. */
public final class Input {

    private Input() {
    }

    public static List<byte[]> read(List<Path> files) throws IOException {
        List<byte[]> messages = new ArrayList<>();
        for (Path file : files) {
            // Latin-1 keeps every byte as it is, whatever the encoding of the file.
            try (BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.ISO_8859_1)) {
                for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                    messages.add(line.getBytes(StandardCharsets.ISO_8859_1));
                }
            }
        }
        return messages;
    }
}
