package penstock.camel.pattern;

import java.util.function.Function;
import org.apache.camel.Exchange;
import org.apache.camel.Expression;
import org.apache.camel.Predicate;
import org.apache.camel.support.ExpressionAdapter;

/** Expressions and predicates on the body that need no conversion. */
final class Body {

    private Body() {
    }

    static <T> Expression expression(Class<T> type, Function<T, ?> function) {
        return new ExpressionAdapter() {
            @Override
            public Object evaluate(Exchange exchange) {
                return function.apply(type.cast(exchange.getMessage().getBody()));
            }
        };
    }

    static <T> Predicate matches(Class<T> type, java.util.function.Predicate<T> predicate) {
        return exchange -> predicate.test(type.cast(exchange.getMessage().getBody()));
    }
}
