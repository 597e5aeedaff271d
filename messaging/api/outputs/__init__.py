"""What the calls answer, as pydantic models: OpenAPI is made from these, and tests hold real
answers against them.
"""
