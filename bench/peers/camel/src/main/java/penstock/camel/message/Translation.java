package penstock.camel.message;

/** An order under the names of another application. */
public record Translation(long order, long customer, double price, String priority, String date, String status) {

    public static Translation of(OrderSummary summary) {
        return new Translation(
                summary.orderKey, summary.customerKey, summary.totalPrice,
                summary.priority, summary.date, summary.status);
    }
}
