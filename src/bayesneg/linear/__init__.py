"""Linear item–item models, solved in closed form; shared by baselines and learned priors."""
