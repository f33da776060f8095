-- Whose code is a frame, by its name as recorded? Grain: rule; the lowest priority that matches wins, the user's rules
-- (main.frame_rule) before these. What no rule matches is the user's own code. Kineto cuts the folders of packages and of
-- Python's library off, so these begin with the package or the module.
CREATE VIEW v1._frame_rule AS
SELECT u.priority, u.pattern, u.is_own, 0 AS place
FROM main.frame_rule AS u
UNION ALL
SELECT r.priority, r.pattern, r.is_own, 1 AS place
FROM (
    VALUES
    (10, '^(<|nn\.Module: )', false),
    (20, '(^|/)(site-packages|dist-packages)/', false),
    (30, '^(torch|torchvision|torchaudio|torch_xla|triton|numpy|apex|transformer_engine|deepspeed|megatron|accelerate'
        || '|transformers|lightning|pytorch_lightning|flash_attn|xformers|fbgemm_gpu|torchrec|vllm|sglang|einops|peft'
        || '|datasets|ray|tqdm|functorch|sympy|networkx|pandas|scipy|PIL|nvtx|cupy|mpi4py)(/|\.py\()', false),
    (40, '^(abc|argparse|ast|asyncio|base64|bdb|bisect|builtins|cProfile|calendar|codecs|collections|concurrent|configparser'
        || '|contextlib|contextvars|copy|copyreg|csv|ctypes|dataclasses|datetime|decimal|difflib|dis|email|encodings|enum'
        || '|fnmatch|fractions|functools|genericpath|getpass|gettext|glob|gzip|hashlib|heapq|hmac|http|importlib|inspect|io'
        || '|json|keyword|linecache|locale|logging|lzma|multiprocessing|numbers|opcode|operator|os|pathlib|pickle|pkgutil'
        || '|platform|posixpath|pprint|profile|pstats|queue|random|re|reprlib|runpy|sched|selectors|shlex|shutil|signal'
        || '|site|socket|socketserver|sqlite3|ssl|stat|statistics|string|struct|subprocess|sysconfig|tarfile|tempfile'
        || '|textwrap|threading|timeit|token|tokenize|traceback|types|typing|unittest|urllib|uuid|warnings|weakref|xml'
        || '|zipfile|zoneinfo|_[a-z_]+)(/.*)?(\.py)?\(', false)
) AS r (priority, pattern, is_own);
