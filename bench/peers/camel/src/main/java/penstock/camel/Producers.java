package penstock.camel;

import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Threads that send at the same time, each one message after the other. */
final class Producers implements AutoCloseable {

    private static final int LARGEST_SHARE = 1000;

    private final Deliveries deliveries;
    private final int producers;
    private final int share;
    private final ExecutorService threads;

    Producers(Deliveries deliveries, int producers) {
        this.deliveries = deliveries;
        this.producers = producers;
        this.share = Math.max(1, Math.min(LARGEST_SHARE, deliveries.size() / (producers * 4)));
        this.threads = Executors.newFixedThreadPool(producers);
    }

    /** Shares are taken when a producer is free, so that a slow one does not keep the others waiting at the end. */
    void send() throws InterruptedException, ExecutionException {
        AtomicInteger next = new AtomicInteger();
        Callable<Void> producer = () -> {
            for (int start = next.getAndAdd(share); start < deliveries.size(); start = next.getAndAdd(share)) {
                int end = Math.min(start + share, deliveries.size());
                for (int index = start; index < end; index++) {
                    deliveries.send(index);
                }
            }
            return null;
        };
        for (Future<Void> sent : threads.invokeAll(Collections.nCopies(producers, producer))) {
            sent.get();
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
