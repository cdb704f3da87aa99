# SPDX-License-Identifier: Apache-2.0
"""The plugin's executable."""

from toy import Toy
from unwindd_plugin import serve

serve(Toy())
