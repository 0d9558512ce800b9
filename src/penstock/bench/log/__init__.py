"""How fast is the message log? The paper's figures, other systems beside it, and Spark's ends of it.

    python -m penstock.bench.log figures | peers | spark
"""
