# SPDX-License-Identifier: Apache-2.0
"""The plugin's executable."""

from runtime_toy import ToyRuntime
from unwindd_plugin import serve

serve(ToyRuntime())
