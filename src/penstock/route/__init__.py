"""What people type: Route, App, and the same as YAML."""
