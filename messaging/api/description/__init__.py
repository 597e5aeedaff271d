"""How the calls are described in OpenAPI: bodies, answers, errors, parameters, security."""
