// SPDX-License-Identifier: Apache-2.0

package sdk

import "os"

// DataVariable is the environment variable by which a plugin is told its DataFolder.
const DataVariable = "UNWINDD_PLUGIN_DATA"

// DataFolder returns the folder of the plugin's data, which lies beside its executable as
// unwindd-arch-NAME.data; "" where there is none. The plugin may read all of it, and write
// nothing. A description must not depend on it: descriptions are kept by the executable alone.
func DataFolder() string { return os.Getenv(DataVariable) }
