"""A training process under watch: probes, recorder, replay, monitors."""
