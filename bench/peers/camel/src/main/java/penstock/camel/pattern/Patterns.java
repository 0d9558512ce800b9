package penstock.camel.pattern;

import static java.util.Map.entry;

import java.util.Map;

/** Every workload that the peer has, by its name in EIPBench. */
public final class Patterns {

    private static final Map<String, Pattern> BY_NAME = Map.ofEntries(
            entry("BL", Baseline::draw),
            entry("RT-1-A", ContentBasedRouter::byPrice),
            entry("RT-1-B", ContentBasedRouter::fiveBranches),
            entry("RT-1-C", ContentBasedRouter::complexCondition),
            entry("RT-1-A-filter", MessageFilter::byPrice),
            entry("RT-2-D", ContentBasedRouter::joinInside),
            entry("RT-2-D-filter", MessageFilter::joinInside),
            entry("RT-3-A", Multicast.to(1)),
            entry("RT-3-B", Multicast.to(4)),
            entry("RT-4-A", RecipientList::byPriority),
            entry("RT-4-B", RecipientList::byPriorityAndStatus),
            entry("RT-5-A", Splitter::collection),
            entry("RT-5-B", Splitter::fields),
            entry("RT-5-C", Splitter::entries),
            entry("RT-6-A", Aggregator.consecutive(10)),
            entry("RT-6-B", Aggregator.consecutive(100)),
            entry("MT-1-A", MessageTranslator::rename),
            entry("MT-2-A", MessageTranslator::filterContent),
            entry("MT-3-A", ContentEnricher::flat),
            entry("MT-3-B", ContentEnricher::nested),
            entry("MT-3-C", ContentEnricher::multiFormat),
            entry("MDS-1-A", Redelivery.after(1)),
            entry("MDS-1-B", Redelivery.after(2)),
            entry("MDS-1-C", Redelivery.after(4)),
            entry("MDS-1-D", Redelivery.after(8)),
            entry("MDS-1-E", Redelivery.after(16)),
            entry("MDS-1-F", Redelivery.after(32)),
            entry("MDS-2-10", Resequencer.complete(10)),
            entry("MDS-2-100", Resequencer.complete(100)),
            entry("MDS-2-1000", Resequencer.complete(1_000)),
            entry("MDS-2-10000", Resequencer.complete(10_000)),
            entry("MDS-2-100000", Resequencer.complete(100_000)),
            entry("MDS-3-A", IdempotentReceiver::draw),
            entry("MDS-3-B", IdempotentReceiver::draw),
            entry("LB-2", LoadBalancer.over(2)),
            entry("LB-3", LoadBalancer.over(3)),
            entry("LB-4", LoadBalancer.over(4)),
            entry("JR-2", JoinRouter.of(2)),
            entry("JR-3", JoinRouter.of(3)),
            entry("JR-4", JoinRouter.of(4)),
            entry("SP-A", Splitter::fields),
            entry("SP-B", Splitter::entries),
            entry("AGG-A", Aggregator.union("order", 11)),
            entry("AGG-B", Aggregator.union("msgId", 6)),
            entry("MT-A", MessageTranslator::rename),
            entry("CE-A", MessageTranslator::copyEntries),
            entry("SpAgg-A", Composition::splitAndAggregateFields),
            entry("SpAgg-B", Composition::splitAndAggregateEntries),
            entry("LBSpAggJR-3", Composition.balancedSplitAndAggregate(3)),
            entry("LBSpAggJR-4", Composition.balancedSplitAndAggregate(4)));

    private Patterns() {
    }

    public static boolean has(String workload) {
        return BY_NAME.containsKey(workload);
    }

    public static Pattern named(String workload) {
        return BY_NAME.get(workload);
    }
}
