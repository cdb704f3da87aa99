// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-php is the plugin of PHP as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(php.New()) }
