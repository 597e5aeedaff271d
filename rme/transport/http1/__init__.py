"""HTTP/1.1, by libcurl."""
