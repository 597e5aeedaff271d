"""The HTTP edge: bodies, headers, proxies, limits of size, and errors as answers."""
