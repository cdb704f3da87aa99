// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/bundled"
)

// bundledFormats reads the files of bundled architectures that are no ELF files, for
// commands that start no plugin.
var bundledFormats = plugin.Formats(bundled.Architectures)
