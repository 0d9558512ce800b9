package penstock.camel.pattern;

/** A failure that is over after some attempts. It has no stack trace, which would cost more than the redelivery. */
final class PassingFault extends Exception {

    private static final long serialVersionUID = 1;

    PassingFault() {
        super("not yet", null, false, false);
    }
}
