"""The training core: one skorch net, phases declared by the methods, batches by slices."""
