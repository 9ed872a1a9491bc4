"""The imagined world: pure functions over frozen values, standard library only. To be read aloud in this order.

What is decided: `lease`, `guard`, `receiver`, `fix`. What is told: `event`, `legal`, `timeline`. What happens: `rows`,
`world`, `leasing`, `writing`, `happening`, `replay`. What it came to: `harm`, `judged`, `render`, `facts`, `shelf`,
`matrix`, `runbook`, `incident`.
"""
