"""Boxes as pods of a Kubernetes cluster."""
