# SPDX-License-Identifier: Apache-2.0
from runtime_toy import ToyRuntime
from unwindd_plugin import serve

if __name__ == "__main__":
    serve(ToyRuntime())
