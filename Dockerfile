# pretrace on a CPU: docker build -t pretrace . && docker run --rm -v "$PWD:/work" -v pretrace-cache:/cache pretrace --help
FROM python:3.11-slim

COPY constraints.txt /src/
# PyTorch's own index has the build without CUDA, of the version that is pinned and tested.
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu -c /src/constraints.txt torch
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[servers,documents]" datasets

RUN useradd --create-home --uid 1000 pretrace && mkdir -p /cache /work && chown pretrace /cache /work
USER pretrace
WORKDIR /work
# Log-probabilities that were read already, and models of the hub.
ENV PRETRACE_CACHE=/cache/pretrace HF_HOME=/cache/huggingface MPLCONFIGDIR=/cache/matplotlib
VOLUME ["/cache"]
ENTRYPOINT ["pretrace"]
CMD ["--help"]
