package penstock.camel.pattern;

import org.apache.camel.model.LoadBalanceDefinition;
import penstock.camel.json.Decode;
import penstock.camel.message.Identified;

final class LoadBalancer {

    private LoadBalancer() {
    }

    static Pattern over(int channels) {
        return routes -> {
            LoadBalanceDefinition balancer =
                    routes.source().process(new Decode(Identified.class)).loadBalance().roundRobin();
            for (int channel = 1; channel <= channels; channel++) {
                balancer.to("channel:route-" + channel);
            }
        };
    }
}
