"""Published data sets and tables to manifests."""
