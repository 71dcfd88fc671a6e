package cli

import (
	"github.com/spf13/cobra"

	"writ/api"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p.print(struct {
				Version string `json:"version"`
			}{api.Version}, func() { p.say("writ %s", api.Version) })
			return nil
		},
	}
}
