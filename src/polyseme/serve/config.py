"""The settings of `polyseme serve`. Imports neither PyTorch nor FastAPI."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.base.config import Config, setting

_NETWORK, _LIMITS, _COMPUTING, _LOGS = "Network", "Limits", "Computing", "Logs"


@dataclass(frozen=True, kw_only=True)
class ServeConfig(Config):
    """Where the service listens, what it accepts, and how it computes."""

    host: str = setting(
        "127.0.0.1", "Address to listen on; 0.0.0.0: all network interfaces.", metavar="ADDRESS", group=_NETWORK
    )
    port: int = setting(8000, "Port to listen on; 0: any free one.", min=0, max=65535, group=_NETWORK)
    api_key: str | None = setting(
        None,
        "Key that requests must have (Authorization: Bearer KEY).",
        default_text="the environment variable POLYSEME_API_KEY; without it no key is needed",
        metavar="KEY",
        group=_NETWORK,
    )
    allow_origin: tuple[str, ...] = setting(
        (), "Let pages of this origin call the service from a browser (may be repeated).", repeat=True, metavar="ORIGIN",
        group=_NETWORK,
    )  # fmt: skip
    allow_host: tuple[str, ...] = setting(
        (),
        "Accept requests for this host name (may be repeated); * accepts all. Addresses, localhost and the name in --host are "
        "always accepted.",
        repeat=True,
        metavar="NAME",
        group=_NETWORK,
    )
    max_body_bytes: int = setting(
        16 * 1024 * 1024, "Maximum size of a request body in bytes, compressed or not.", min=1, group=_LIMITS
    )
    max_texts: int = setting(20_000, "Maximum number of texts per request.", min=1, group=_LIMITS)
    max_text_words: int = setting(20_000, "Maximum number of words per text.", min=1, group=_LIMITS)
    max_requests: int = setting(1024, "Maximum number of open requests.", min=1, group=_LIMITS)
    max_wait: float = setting(
        1.0,
        "Maximum expected wait of a new request, else it is refused (status 429); up to 64 requests are always queued.",
        above=0,
        metavar="SECONDS",
        group=_LIMITS,
    )
    max_queue_words: int = setting(
        32_768, "Maximum number of words in the queue; requests beyond it are refused (status 429).", min=1, group=_LIMITS
    )
    read_timeout: float = setting(
        30.0,
        "Seconds to wait for the headers of a request, and then its body.",
        above=0,
        metavar="SECONDS",
        group=_LIMITS,
    )
    batch_words: int = setting(2_048, "Maximum number of words per batch.", min=1, group=_COMPUTING)
    workers: int = setting(1, "Worker processes; they share the weights in memory.", min=1, group=_COMPUTING)
    shutdown_timeout: int = setting(
        30, "Seconds to finish open requests in when the service is stopped.", min=0, metavar="SECONDS", group=_COMPUTING
    )
    runs: str | None = setting(None, "Folder of training runs whose curves the page shows.", metavar="FOLDER", group=_LOGS)
    log_json: bool = setting(False, "Write the log as JSON lines.", group=_LOGS)
