# The HTTP service on a CPU, with the models that the package ships:
#   docker build -t polyseme .
#   docker run --rm -p 127.0.0.1:8000:8000 polyseme
FROM python:3.12-slim
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# the extra index has builds of PyTorch without CUDA; without it an x86 machine downloads gigabytes
RUN pip install --no-cache-dir -c constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu torch
RUN pip install --no-cache-dir -c constraints.txt '.[serve,zh]'
RUN useradd --create-home polyseme
USER polyseme
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/livez', timeout=3)"]
ENTRYPOINT ["polyseme", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["--log-json"]
